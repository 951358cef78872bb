import { execFile } from 'node:child_process'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { expect, it, onTestFinished } from 'vitest'

it('a log on a full file system refuses appends, keeps what it has, and goes on once there is room', async () => {
  const folder = await mkdtemp(join(tmpdir(), 'rivulet-full-'))
  onTestFinished(() => rm(folder, { recursive: true, force: true }))
  const program = join(import.meta.dirname, 'full-disk-process.ts')
  const node = `${process.execPath} --conditions=rivulet-source --disable-warning=ExperimentalWarning`
  // A namespace of its own: the file system goes with its processes.
  const script = `mount -t tmpfs -o size=2m tmpfs "$1" && exec ${node} ${program} "$1"`
  const { stdout } = await promisify(execFile)('unshare', ['-rm', 'sh', '-c', script, 'sh', folder])
  const result: Record<string, unknown> = JSON.parse(stdout)

  expect(result).toMatchObject({ isRefused: true, message: expect.stringContaining('the disk is full') })
  const { before } = result
  expect(before).toBeGreaterThan(10)
  expect(result['position']).toBe(String(before))
  expect(result['read']).toBe(Number(before) + 1)
})
