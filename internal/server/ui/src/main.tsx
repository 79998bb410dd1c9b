import './lib/noeval'
import { QueryClient, QueryClientProvider } from '@tanstack/react-query'
import { StrictMode } from 'react'
import { createRoot } from 'react-dom/client'
import { RTooltip } from './components/ui'
import './index.css'
import { Problem } from './lib/problem'
import './lib/theme'
import { App } from './shell/app'

const retryable = (failures: number, error: unknown) => !(error instanceof Problem && error.status >= 400 && error.status < 500) && failures < 2

const client = new QueryClient({
  defaultOptions: { queries: { retry: retryable, retryDelay: 600, staleTime: 5_000, refetchOnWindowFocus: false, networkMode: 'always' } },
})

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <QueryClientProvider client={client}>
      <RTooltip.Provider>
        <App />
      </RTooltip.Provider>
    </QueryClientProvider>
  </StrictMode>,
)
