struct list {
    struct item *first;
};

int list_add(struct list *list, const char *name);    /* -1 where memory is short */
int list_remove(struct list *list, const char *name); /* the number of removed items */
void list_clear(struct list *list);
