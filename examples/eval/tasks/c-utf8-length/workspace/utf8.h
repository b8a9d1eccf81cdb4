/* The number of bytes that a code point takes in UTF-8; 0 where it is none. */
int utf8_bytes(unsigned long point);
