import { randomUUID } from 'node:crypto'

/** A new id such as `mevt_5b1f…`, which nothing else has. */
export function identifier(prefix: string): string {
  return `${prefix}_${randomUUID().replaceAll('-', '')}`
}
