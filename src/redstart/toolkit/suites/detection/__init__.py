"""Which tests a project has, what runs them and with which interpreter."""
