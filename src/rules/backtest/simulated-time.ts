import type { AlertEvent, InMemoryRules } from '../evaluate/in-memory.ts'

/** Moves the time of rules as a recorder does that never stops: deadlines fire when they are due, and not at the next event. */
export function passTime(
  rules: InMemoryRules,
  until: number,
  emit: (events: readonly AlertEvent[]) => void,
): void {
  for (let due = rules.nextDue; due !== undefined && due <= until; due = rules.nextDue) emit(rules.tick(due))
  emit(rules.tick(until))
}

/** When an alert event happened, in Unix ms: when its deadline was due, or when the event that caused it was recorded. */
export function momentOf({ cause, received }: AlertEvent): number {
  return cause?.due ?? Date.parse(received)
}
