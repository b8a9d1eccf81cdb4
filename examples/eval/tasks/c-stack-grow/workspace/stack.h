struct stack {
    int values[16];
    int count;
};

int push(struct stack *stack, int value); /* -1 where it is full */
int pop(struct stack *stack, int *value); /* -1 where it is empty */
