import type { ResearchEvent } from 'rivulet'
import { tickEvent } from '../../src/protocol/log-event.ts'

let number = 0

/** A tick of a recorder, at a time in Unix ms. All events have come up to `through`, unless it is not `complete`. */
export function tickAt(at: number, through: number | null = at, complete = true): ResearchEvent {
  number += 1
  return tickEvent(number, at, { through, complete })
}
