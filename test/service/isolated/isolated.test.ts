import { join } from 'node:path'
import { describe, expect, it, onTestFinished } from 'vitest'
import { createIsolated } from '../../../src/service/isolated/isolated.ts'
import { temporaryFolder } from '../running.ts'

function crashing() {
  const isolated = createIsolated(new URL('./crashing-worker.ts', import.meta.url))
  onTestFinished(() => isolated.close())
  return isolated
}

describe('a crash of the isolated thread', () => {
  it('is no issue of the schema', async () => {
    const isolated = crashing()

    await expect(isolated.checkSchema({})).rejects.toMatchObject({ name: 'IsolatedError', kind: 'crash' })
    await expect(isolated.validate({}, 1)).rejects.toMatchObject({ kind: 'crash' })
  })

  it('is not seen by a check that a second thread executes', async () => {
    const isolated = crashing()
    const folder = await temporaryFolder()

    expect(await isolated.checkSchema({ title: join(folder, 'checked') })).toEqual([])
    expect(await isolated.validate({ title: join(folder, 'validated') }, 1)).toBeUndefined()
  })
})
