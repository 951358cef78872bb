import { checkMethods } from './check.ts'

/** An open log, or an object with those of its methods that are called. */
export function checkLog(log: unknown, methods: readonly string[] = ['consume', 'process']): void {
  checkMethods('log', log, 'an open log, of openLog', methods)
}
