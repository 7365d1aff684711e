"""The sandbox that Docker or Podman gives."""
