"""Who is wired to whom? The only place that knows concrete classes."""
