"""Parts that several machines share: cables, drives and cable exits."""
