import { expect, it, onTestFinished, vi } from 'vitest'
import { memoryStore, openLog } from 'rivulet/log'
import type { LogStats } from 'rivulet/log'
import { StatusReader } from '../../src/dashboard/status.ts'

it('a status that is never read is not waited for by those who ask a minute later', async () => {
  vi.useFakeTimers({ toFake: ['performance'] })
  onTestFinished(() => void vi.useRealTimers())
  const log = await openLog(memoryStore())
  onTestFinished(() => log.close())
  const stats = vi.spyOn(log, 'stats').mockReturnValueOnce(new Promise<LogStats>(() => {}))
  const can = { search: false, addRuns: false, documents: false }
  const status = new StatusReader(log, can)

  void status.read()
  vi.advanceTimersByTime(59_000)
  void status.read()
  expect(stats).toHaveBeenCalledTimes(1)
  vi.advanceTimersByTime(1_000)
  expect(await status.read()).toMatchObject({ log: { entries: 0 } })
})
