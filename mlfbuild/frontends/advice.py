"""What to do about a model file that cannot be read, or cannot be compiled, where the reason does not say it itself."""

EXPORT_AGAIN = "copy or export the model again"
CHANGE = "change that in the model, or choose another compiler (tvm or command)"
