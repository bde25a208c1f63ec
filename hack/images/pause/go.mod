module localhost/slinky/pause

go 1.24
