import { execFileSync, spawn } from 'node:child_process'
import { once } from 'node:events'
import { existsSync, mkdirSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { createInterface } from 'node:readline'
import { openLog } from 'rivulet'
import { sqliteLog } from 'rivulet/log/sqlite'
import { describe, expect, it, onTestFinished } from 'vitest'
import { scratchFolder } from '../log/sqlite/scratch.ts'
import { idsOf, readAll } from '../log/conformance/fixture.ts'

interface Line {
  readonly appended?: string
  readonly failed?: string
  readonly message?: string
  readonly ended?: boolean
}

/** A process that records until its disk fails. Killed after the test. */
function recording(command: readonly string[], file: string, env: Readonly<Record<string, string>> = {}) {
  const program = join(import.meta.dirname, 'disk/recording-process.ts')
  const [executable = '', ...args] = [
    ...command,
    process.execPath,
    '--conditions=rivulet-source',
    program,
    file,
  ]
  const child = spawn(executable, args, {
    env: { ...process.env, ...env },
    stdio: ['pipe', 'pipe', 'inherit'],
  })
  onTestFinished(() => void child.kill('SIGKILL'))
  const lines = createInterface(child.stdout)[Symbol.asyncIterator]()
  const appended: string[] = []
  return {
    child,
    appended,
    /** The next line that is wanted. */
    async until(isWanted: (line: Line) => boolean): Promise<Line> {
      for (;;) {
        const { value, done } = await lines.next()
        if (done === true) throw new Error('the process has ended')
        const line: Line = JSON.parse(value)
        if (line.appended !== undefined) appended.push(line.appended)
        if (isWanted(line)) return line
      }
    },
  }
}

/** What is in the log of a file. */
async function recorded(file: string): Promise<readonly string[]> {
  const store = sqliteLog(file)
  const log = await openLog(store)
  try {
    return idsOf(await readAll(store))
  } finally {
    await log.close()
  }
}

describe('a recorder whose disk fails', () => {
  it('ends with the first sync that fails, and what it has reported as appended is there', async () => {
    const folder = scratchFolder()
    const [shim, flag, file] = ['failing-sync.so', 'fails', 'log.db'].map((name) => join(folder, name))
    if (shim === undefined || flag === undefined || file === undefined) throw new RangeError('three paths')
    const source = join(import.meta.dirname, 'disk/failing-sync.c')
    execFileSync('gcc', ['-shared', '-fPIC', '-o', shim, source, '-ldl'])
    const { child, appended, until } = recording([], file, { LD_PRELOAD: shim, FAILING_SYNC: flag })
    await until(() => appended.length === 20)
    writeFileSync(flag, '')
    expect(await until(({ failed }) => failed !== undefined)).toMatchObject({
      failed: 'LogFileError',
      retryable: false,
      message: expect.stringContaining('its disk failed'),
    })
    // The disk works again, and would take what comes. But what the system had not synced may be gone from its memory.
    rmSync(flag)
    child.stdin.write('go on\n')
    await until(({ ended }) => ended === true)

    const ids = await recorded(file)
    expect(ids.slice(0, appended.length)).toEqual(appended)
    expect(ids.length).toBeLessThanOrEqual(appended.length + 1)
    expect(ids.filter((id) => id.startsWith('after'))).toEqual([])
  })

  it('ends when the disk is full, and what it has reported as appended is there', async () => {
    const folder = scratchFolder()
    const small = join(folder, 'small')
    const copy = join(folder, 'copy')
    mkdirSync(small)
    mkdirSync(copy)
    // The file system is gone with the process.
    const inside = `mount -t tmpfs -o size=2m none "$1" && folder="$1" && shift && to="$1" && shift && "$@"; cp "$folder"/log.db* "$to"`
    const { child, appended, until } = recording(
      ['unshare', '-Urm', 'sh', '-c', inside, 'sh', small, copy],
      join(small, 'log.db'),
    )
    const { failed, message } = await until((line) => line.failed !== undefined)
    expect(failed).toBe('LogFileError')
    expect(message).toContain('the disk is full')
    child.stdin.write('go on\n')
    await until(({ ended }) => ended === true)
    if (child.exitCode === null) await once(child, 'exit')

    expect(appended.length).toBeGreaterThan(10)
    expect(existsSync(join(copy, 'log.db'))).toBe(true)
    const ids = await recorded(join(copy, 'log.db'))
    expect(ids.slice(0, appended.length)).toEqual(appended)
    expect(ids.filter((id) => id.startsWith('after'))).toEqual([])
  })
})
