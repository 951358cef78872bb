import { randomUUID } from 'node:crypto'

/** Creates a unique id such as `mevt_5b1f…`. */
export function identifier(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll('-', '')}`
}
