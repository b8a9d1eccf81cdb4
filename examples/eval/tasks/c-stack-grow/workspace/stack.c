#include "stack.h"

int push(struct stack *stack, int value)
{
    if (stack->count == 16)
        return -1;
    stack->values[stack->count++] = value;
    return 0;
}

int pop(struct stack *stack, int *value)
{
    if (stack->count == 0)
        return -1;
    *value = stack->values[--stack->count];
    return 0;
}
