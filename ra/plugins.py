"""How is user code loaded? `path.py:name` becomes an object, from that file and nowhere else."""
