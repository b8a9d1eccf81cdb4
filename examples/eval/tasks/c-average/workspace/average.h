/* The average of two numbers, rounded towards zero. */
int average(int a, int b);
