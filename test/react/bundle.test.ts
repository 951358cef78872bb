import { describe, expect, it } from 'vitest'
import * as react from 'rivulet/react'
import { bundleForBrowsers, PARTS } from '../../bench/bundle.ts'

const namesOf = async (module: string) => (await bundleForBrowsers(module)).modules.map(({ name }) => name)

describe('a bundle of rivulet/react', () => {
  it('has only the hooks that it uses', async () => {
    const names = await namesOf(`export { useView } from 'rivulet/react'`)

    expect(names).toContain('src/react/use-view.ts')
    expect(names.filter((name) => /inspector|suspense|search/.test(name))).toEqual([])
  })

  it('has the inspector only where it is used', async () => {
    expect(await namesOf(`export { LiveInspector } from 'rivulet/react'`)).toEqual(
      expect.arrayContaining(['src/react/live-inspector.ts']),
    )
  })

  it('is measured with everything that it exports but the inspector', () => {
    const { module = '' } = PARTS.find(({ name }) => name.endsWith('rivulet/react')) ?? {}

    expect(Object.keys(react).filter((name) => !module.includes(name))).toEqual(['LiveInspector'])
  })
})
