"""The papers behind the machines, repeated and judged; one package per paper."""
