"""Names of files and folders that hold keys or passwords. Their contents go to no model and into no sandbox."""

from __future__ import annotations

from fnmatch import fnmatchcase

FOLDERS = (".ssh", ".gnupg", ".aws", ".azure", ".kube", ".docker", ".gcloud")
_FILES = (
    *(".env", ".env.*", "*.env", ".envrc", ".netrc", "_netrc", ".npmrc", ".pypirc", ".htpasswd", ".pgpass", ".my.cnf"),
    *("id_rsa*", "id_dsa*", "id_ecdsa*", "id_ed25519*", "*.pem", "*.key", "*.ppk", "*.p12", "*.pfx", "*.jks"),
    *("*.keystore", "*.kdbx", "*.asc", "*.gpg", ".git-credentials", "*.tfstate", "*.tfvars", ".dockercfg"),
    *("wp-config.php", "service-account*.json", "service_account*.json", "kubeconfig"),
)
_CODE = (".py", ".pyi", ".js", ".ts", ".go", ".rs", ".java", ".rb", ".md", ".rst", ".html")
_EXAMPLES = (".example", ".sample", ".template", ".dist")


def is_secret(name: str) -> bool:
    """Return whether a file or folder name is secret, ignoring case. Code, prose and examples are not secret."""
    folded = name.casefold()
    return folded in FOLDERS or (not is_harmless(folded) and any(fnmatchcase(folded, file) for file in _FILES))


def is_harmless(name: str) -> bool:
    """Return whether the name has the suffix of code, prose or an example. The rest of the name does not matter."""
    return name.casefold().endswith((*_EXAMPLES, *_CODE))
