"""Two whole models on the same inputs."""
