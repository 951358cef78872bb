import { openDatabase } from '../../src/service/database.ts'

/** Opens the data file of its argument until it is killed by the test. Sends `open`, or why it was refused. */
const [file = ''] = process.argv.slice(2)
let answer = 'open'
try {
  const database = openDatabase(file)
  // Keeps the database reachable, and the process alive.
  setInterval(() => database.isOpen, 60_000)
} catch (error) {
  answer = error instanceof Error ? (error.message.split(':')[0] ?? '') : String(error)
}
process.send?.(answer)
