"""The warm process, which has `punch` loaded and runs the commands that `client/punch.c` hands over."""
