"""What figures and pages stand on: the kit, the model in JavaScript, and how both reach a page."""
