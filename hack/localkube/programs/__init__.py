"""The programs a local cluster is made of: built once from Go modules, or installed from Debian packages."""
