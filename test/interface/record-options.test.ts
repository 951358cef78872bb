import { readFileSync } from 'node:fs'
import { createClient } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import { expect, it } from 'vitest'

it('the table of options of log.record in docs/reference/log.md has each option', async () => {
  const page = readFileSync(new URL('../../docs/reference/log.md', import.meta.url), 'utf8')
  const recording = page.slice(page.indexOf('## Recording'), page.indexOf('A monitor costs one request'))
  const cells = [...recording.matchAll(/^\| (`[^|]*) \|/gm)].map(([, cell = '']) => cell)
  const documented = cells.flatMap((cell) => [...cell.matchAll(/`(\w+)`/g)].map(([, name]) => name))
  const client = createClient({ baseUrl: 'http://127.0.0.1:1', apiKey: 'key' })
  await using log = await openLog(memoryStore())
  const unknown = { client, thisIsNoOptionAtAll: true }
  const known = documented.toSorted().join(', ')
  expect(documented).toContain('tick')
  expect(() => log.record(unknown)).toThrow(`known are ${known}`)
})
