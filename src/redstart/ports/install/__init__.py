"""Install the packages that a project asks for."""
