"""The TFLite flatbuffer: declarative tables, a checked reader, a writer."""
