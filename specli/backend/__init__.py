"""llama.cpp, through llama_cpp's low-level C API: the only room that imports it."""
