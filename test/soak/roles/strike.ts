import { DatabaseSync, StatementSync } from 'node:sqlite'
import type { RoleOrder, StrikeOrder, TransactionKind } from '../messages.ts'

/** The statements by which a transaction is known, the most specific kind first. */
const STATEMENTS: readonly (readonly [TransactionKind, RegExp])[] = [
  ['trim', /^\s*DELETE\s+FROM\s+rivulet_entry\b/i],
  ['timer', /^\s*(INSERT|UPDATE|DELETE)\b.*\brivulet_timer\b/is],
  ['inbox', /^\s*INSERT\b.*\brivulet_webhook\b/is],
  ['append', /^\s*INSERT\b.*\brivulet_entry\b/is],
  ['effect', /^\s*INSERT\s+INTO\s+effects\b/i],
  ['acknowledge', /\b(INTO|UPDATE)\s+rivulet_reader\b/i],
]

let order: StrikeOrder | undefined
let kinds = new Set<TransactionKind>()

/**
 * Watches the SQL of this process from below the library, and kills the process at a commit when it is ordered to: SQLite has
 * the whole transaction and no other connection can see it yet, or all can and this process does not know.
 */
export function watchTransactions(): void {
  process.on('message', (message: RoleOrder) => {
    if ('within' in message) order = message
  })
  for (const method of ['run', 'get', 'all'] as const) {
    const original = StatementSync.prototype[method]
    const watched = function (this: StatementSync, ...values: unknown[]) {
      return executed(this.sourceSQL, () => Reflect.apply(original, this, values))
    }
    Object.defineProperty(StatementSync.prototype, method, { value: watched })
  }
  const exec = DatabaseSync.prototype.exec
  DatabaseSync.prototype.exec = function (sql) {
    executed(sql, () => exec.call(this, sql))
  }
}

function executed<Result>(sql: string, execute: () => Result): Result {
  if (/^\s*BEGIN\b/i.test(sql)) kinds = new Set()
  for (const [kind, pattern] of STATEMENTS) if (pattern.test(sql)) kinds.add(kind)
  const isDue = /^\s*COMMIT\b/i.test(sql) && order !== undefined && kinds.has(order.within)
  if (isDue && order?.at === 'before') die()
  const result = execute()
  if (isDue) die()
  return result
}

function die(): void {
  process.kill(process.pid, 'SIGKILL')
}
