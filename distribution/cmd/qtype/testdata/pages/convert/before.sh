printf '#!/bin/sh\necho "[]"\n' >search
chmod +x search
