"""J. Lieskovsky, "Positioning of tensegrity structures" (2022): its strut, its manipulator, their
control and its splines."""
