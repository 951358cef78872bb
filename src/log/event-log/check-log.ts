import { checkMethods } from '../../protocol/check.ts'
import type { EventLog } from './event-log.ts'

/** An open log, or an object with those of its methods that are called. */
export function checkLog(
  log: unknown,
  methods: readonly (keyof EventLog & string)[] = ['consume', 'process'],
): void {
  checkMethods('log', log, 'an open log, of openLog', methods)
}
