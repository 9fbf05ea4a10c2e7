// Exists so that the precompiled header has a target that owns it.
