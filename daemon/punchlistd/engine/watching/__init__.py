"""Those who follow a list, and what each of them is shown."""
