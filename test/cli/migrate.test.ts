import { existsSync } from 'node:fs'
import { join } from 'node:path'
import { DatabaseSync } from 'node:sqlite'
import { openLog } from 'rivulet/log'
import type { Entry } from 'rivulet/log'
import { exactlyOnce, sqliteStore } from 'rivulet/log/sqlite'
import { describe, expect, it } from 'vitest'
import { append } from '../log/append.ts'
import { readAll } from '../log/conformance/fixture.ts'
import { scratchFolder } from '../log/sqlite/scratch.ts'
import { change } from '../operators/events.ts'
import { rivulet } from './command.ts'

const migrate = (from: string, to: string, ...args: readonly string[]) =>
  rivulet(['log', 'migrate', '--log', from, '--to', to, ...args]).ended

/** A folder with a log of some entries. */
async function logOf(count: number) {
  const folder = scratchFolder()
  const file = join(folder, 'log.db')
  const log = sqliteStore(file)
  for (let at = 0; at < count; at += 200) {
    await append(
      log,
      Array.from({ length: Math.min(200, count - at) }, (_, n) => change(`e${at + n}`)),
    )
  }
  await log.close()
  return { folder, file, target: join(folder, 'new.db') }
}

describe('rivulet log migrate', () => {
  it('copies a log, and prints its counts and its hash, which is the same for the copy', async () => {
    const { file, folder, target } = await logOf(700)
    const { code, stdout, stderr } = await migrate(file, target)

    expect({ code, stderr }).toEqual({ code: 0, stderr: '' })
    expect(stdout).toMatch(/has what .*\n700 entries, SHA-256 [\da-f]{64}\n\d+ streams, /)
    const again = await migrate(target, join(folder, 'third.db'), '--json')
    const { migrated } = JSON.parse(again.stdout)
    expect(migrated).toMatchObject({ entries: 700, readers: 0 })
    expect(stdout).toContain(migrated.hash)
    await using log = await openLog(sqliteStore(target, { create: false }))
    expect((await log.stats()).entries).toBe(700)
  })

  it('moves a consumer with exactlyOnce along with the database of its effects, and names the option without it', async () => {
    const { file, folder, target } = await logOf(3)
    const path = join(folder, 'effects.db')
    const seen: string[] = []
    const consume = async (log: string, count: number) => {
      await using opened = await openLog(sqliteStore(log))
      using database = new DatabaseSync(path)
      const { promise, resolve } = Promise.withResolvers<void>()
      const effect = ({ id }: Entry) => {
        if (seen.push(id) === count) resolve()
      }
      const job = opened.consume('ledger', exactlyOnce(database, { effect }))
      await Promise.race([promise, job.done])
      await job.stop()
    }
    await consume(file, 3)
    const refused = await migrate(file, target)
    expect(refused.code).not.toBe(0)
    expect(refused.stderr).toContain('--effects FILE')
    expect(await migrate(file, target, '--effects', join(folder, 'missing.db'))).toMatchObject({ code: 2 })
    expect(await migrate(file, target, '--effects', path)).toMatchObject({ code: 0, stderr: '' })

    const log = sqliteStore(target)
    await append(log, [change('e3')])
    await log.close()
    await consume(target, 4)
    expect(seen).toEqual(['e0', 'e1', 'e2', 'e3'])
  })

  it('refuses a log that is in use, one that is missing, and a file that exists, and leaves all as it is', async () => {
    const { file, folder, target } = await logOf(3)
    const log = sqliteStore(file, { owner: 'the recorder' })
    await log.claim('monitors/m')
    const used = await migrate(file, target)
    expect(used).toMatchObject({ code: 6, stdout: '' })
    expect(used.stderr).toContain('the recorder')
    expect(used.stderr).toContain('end all that uses the log, and copy it then')
    await log.close()

    expect(await migrate(join(folder, 'missing.db'), target)).toMatchObject({ code: 7 })
    expect(existsSync(target)).toBe(false)
    const there = await migrate(file, file)
    expect(there).toMatchObject({ code: 7, stdout: '' })
    expect(there.stderr).toContain('exists already')
    const back = sqliteStore(file)
    expect(await readAll(back)).toHaveLength(3)
    await back.close()
  })
})
