import { spawnSync } from 'node:child_process'
import { hostname } from 'node:os'
import { describe, expect, it } from 'vitest'
import { isGone, thisProcess } from '../../src/state/process-identity.ts'

/** The id of a process that was. */
function pastPid(): number {
  return spawnSync(process.execPath, ['--version']).pid
}

describe('a process', () => {
  it('is there: this one, and another that runs', () => {
    expect(isGone(thisProcess)).toBe(false)
    expect(isGone({ ...thisProcess, pid: process.ppid })).toBe(false)
  })

  it('is gone when nobody has its id any more', () => {
    expect(isGone({ ...thisProcess, pid: pastPid() })).toBe(true)
  })

  it('is gone when its id has come to this one', () => {
    expect(isGone({ ...thisProcess, startedAt: thisProcess.startedAt - 60_000 })).toBe(true)
  })

  it.each([
    ['on another host', thisProcess.host.replace(hostname(), 'elsewhere')],
    ['in a container with the name of this host', `${thisProcess.host}0`],
    ['of which only the name of the host is known', `${hostname()} `],
  ])('%s may be there, whatever has its id here', (_, host) => {
    expect(isGone({ ...thisProcess, host, pid: pastPid() })).toBe(false)
    expect(isGone({ ...thisProcess, host, startedAt: 0 })).toBe(false)
  })

  it('with the first id of a container is gone once that was started again, and not for its neighbour', () => {
    const init = { host: 'h boot pid:[1]', pid: 1, startedAt: 1_000 }
    const restarted = { ...init, startedAt: 2_000 }
    const neighbour = { ...restarted, host: 'h boot pid:[2]' }

    expect(isGone(init, restarted)).toBe(true)
    expect(isGone(init, neighbour)).toBe(false)
  })
})
