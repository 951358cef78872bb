import type { Plugin } from 'rolldown'
import type { BundledPage } from '../src/dashboard/source-page.ts'

/** Writes the page of the dashboard into `dist/dashboard/`, where the built package reads it. */
export function dashboardPage(page: Promise<BundledPage>): Plugin {
  return {
    name: 'dashboard-page',
    async generateBundle() {
      for (const { name, bytes } of (await page).files) {
        this.emitFile({ type: 'asset', fileName: `dashboard/${name}`, source: bytes })
      }
    },
  }
}
