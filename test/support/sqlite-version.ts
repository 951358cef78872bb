import { onTestFinished } from 'vitest'

/** Has this process say that its SQLite is of another version, until the test is over. */
export function pretendSqlite(version: string): void {
  const present = Object.getOwnPropertyDescriptor(process.versions, 'sqlite')
  if (present === undefined) throw new Error('this Node has no SQLite')
  Object.defineProperty(process.versions, 'sqlite', { ...present, value: version })
  onTestFinished(() => void Object.defineProperty(process.versions, 'sqlite', present))
}
