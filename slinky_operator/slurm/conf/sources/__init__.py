"""The user's part of the configuration: files and scripts from the spec and from the ConfigMaps it names."""
