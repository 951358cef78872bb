import { existsSync, writeFileSync } from 'node:fs'
import { serveJobs } from '../../../src/service/isolated/serve-jobs.ts'

/** Ends the thread: the first time only, if the schema names a file in which that is noted. */
function crash(schema: string): void {
  const { title: note } = JSON.parse(schema)
  if (note !== undefined && existsSync(note)) return
  if (note !== undefined) writeFileSync(note, '')
  process.exit(3)
}

serveJobs({
  checkSchema: async () => (schema: string) => {
    crash(schema)
    return []
  },
  validate:
    async () =>
    ({ schema }: { schema: string }) =>
      crash(schema),
})
