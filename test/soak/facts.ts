/** Whether events of this type are counted: of what a group says of itself the service's database keeps no list. */
export function isCounted(type: string): boolean {
  return type === 'task_run.state' || type.startsWith('monitor.')
}

/** An event of a source, as one text. */
export function factOf({ source, id }: { readonly source: string; readonly id: string }): string {
  return `${source} ${id}`
}
