"""Parts shared by several machines: cables, drives, cable exits, contact and friction."""
