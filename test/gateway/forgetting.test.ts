import { existsSync } from 'node:fs'
import { readFile } from 'node:fs/promises'
import { join } from 'node:path'
import { groupEvent } from 'rivulet'
import { memoryStore, openLog } from 'rivulet/log'
import type { LogStore } from 'rivulet/log/store'
import { createGateway, groupsView, groupView } from 'rivulet/gateway'
import { sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it } from 'vitest'
import { folderOf } from '../cli/command.ts'
import { append } from '../log/append.ts'
import { processed, SECRET } from './fixture.ts'

/** Stores of one log, and the text of its files. */
const KINDS: readonly (readonly [
  string,
  () => Promise<{ open: () => LogStore; text: () => Promise<string> }>,
])[] = [
  [
    'in memory',
    async () => {
      const first = memoryStore()
      return { open: () => first.connect(), text: async () => '' }
    },
  ],
  [
    'in a file',
    async () => {
      const file = join(await folderOf({}), 'log.db')
      const files = () => [file, `${file}-wal`].filter((each) => existsSync(each))
      const text = async () => (await Promise.all(files().map((each) => readFile(each, 'latin1')))).join('')
      return { open: () => sqliteStore(file), text }
    },
  ],
]

const VIEWS = { groups: groupsView(), group: groupView() }
const GRANT = { sub: 'user', views: ['groups', 'group'], sources: ['*'] }

/** The end of a run of a group, with an answer. */
const run = (group: string, content: string) =>
  groupEvent(
    group,
    {
      type: 'task_run.state',
      event_id: `${group}:1`,
      run: { run_id: `run_of_${group}`, taskgroup_id: group, status: 'completed', modified_at: null },
      output: { type: 'text', content, basis: [] },
    },
    'stream',
    undefined,
    Date.UTC(2026, 0, 1),
  )

describe.each(KINDS)('rows of a source that a log %s has forgotten', (_, create) => {
  async function forgetting() {
    const { open, text } = await create()
    /** Runs a gateway until its views have processed everything. Returns all rows as a text. */
    const rows = async () => {
      const store = open()
      await using log = await openLog(store)
      await using gateway = createGateway({ log, views: VIEWS, tokens: { secret: SECRET } })
      for (const name of Object.keys(VIEWS)) await processed(store, name)
      const all = await gateway.snapshot(GRANT, [
        { view: 'groups' },
        { view: 'group', params: { group: 'gone' } },
        { view: 'group', params: { group: 'kept' } },
      ])
      return JSON.stringify(all)
    }
    const recorded = open()
    await append(recorded, [run('gone', 'a secret answer'), run('kept', 'another answer')])
    await recorded.close()
    expect(await rows()).toContain('a secret answer')
    return { rows, log: () => openLog(open()), text }
  }
  const { source } = run('gone', '')

  it('stay in views until these are removed, which are named', async () => {
    const { rows, log } = await forgetting()
    await using own = await log()
    // The rows of all groups have no answer of a run, and their timers have the event that started them.
    expect(await own.forget({ source })).toEqual({ entries: 1, processes: ['view:group', 'view:groups'] })
    expect(await rows()).toContain('a secret answer')
  })

  it('are gone, also from the file, when the named views are removed, and others are there again', async () => {
    const { rows, log, text } = await forgetting()
    await using own = await log()
    const { processes } = await own.forget({ source })
    for (const process of processes) await own.remove({ process })
    expect(await own.forget({ source })).toEqual({ entries: 0, processes: [] })
    expect(await text()).not.toContain('a secret answer')

    const after = await rows()
    expect(after).not.toContain('a secret answer')
    expect(after).not.toContain('run_of_gone')
    expect(after).toContain('another answer')
    expect(await text()).not.toContain('a secret answer')
  })
})
