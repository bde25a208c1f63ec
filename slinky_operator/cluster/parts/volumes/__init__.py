"""Whether the volumes of daemons have room, by the agents beside them."""
