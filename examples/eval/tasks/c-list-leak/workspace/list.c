#include "list.h"
#include <stdlib.h>
#include <string.h>

struct item {
    struct item *next;
    char *name;
};

int list_add(struct list *list, const char *name)
{
    struct item *item = malloc(sizeof *item);
    if (!item)
        return -1;
    item->name = malloc(strlen(name) + 1);
    if (!item->name)
        return -1;
    strcpy(item->name, name);
    item->next = list->first;
    list->first = item;
    return 0;
}

int list_remove(struct list *list, const char *name)
{
    int removed = 0;
    for (struct item **place = &list->first; *place;) {
        struct item *item = *place;
        if (strcmp(item->name, name) == 0) {
            *place = item->next;
            free(item);
            removed++;
        } else {
            place = &item->next;
        }
    }
    return removed;
}

void list_clear(struct list *list)
{
    for (struct item *item = list->first; item; item = item->next)
        free(item->name);
    list->first = NULL;
}
