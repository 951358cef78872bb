import { createHash } from 'node:crypto'

/** The halves of a set. People tune with `tuning`; `held` is measured only. */
export const HALVES = ['tuning', 'held'] as const

/** A half of a set. */
export type Half = (typeof HALVES)[number]

/** The half of all items with this subject, in every set: by the first byte of SHA-256 of its name, even or odd. */
export function halfOf(subject: string): Half {
  const first = createHash('sha256').update(subject).digest()[0] ?? 0
  return first % 2 === 0 ? 'tuning' : 'held'
}
