import { createRoot } from 'react-dom/client';
import { Page } from './workspace-page.tsx';

const root = document.getElementById('root');
if (root !== null) createRoot(root).render(<Page />);
