import { onTestFinished } from 'vitest'

/** Overrides the reported version of SQLite until the test ends. */
export function pretendSqlite(version: string): void {
  const present = Object.getOwnPropertyDescriptor(process.versions, 'sqlite')
  if (present === undefined) throw new Error('this Node has no SQLite')
  Object.defineProperty(process.versions, 'sqlite', { ...present, value: version })
  onTestFinished(() => void Object.defineProperty(process.versions, 'sqlite', present))
}
