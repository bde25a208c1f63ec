"""What calls do in the pretended cluster, by the kind of object that they are about."""
